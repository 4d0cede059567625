"""Data sets: files, lists and objects of other tools -> rows, each with its sample or with what is wrong with it."""

from __future__ import annotations

from pytest_ragmetrics.datasets.reading import Where as Where
from pytest_ragmetrics.datasets.reading import read_dataset as read_dataset
from pytest_ragmetrics.datasets.rows import DatasetRow as DatasetRow
