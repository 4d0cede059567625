"""Data sets: files, lists and objects of other tools -> rows, each with its sample or with what is wrong with it."""

from pytest_ragmetrics.datasets.reading import read_dataset as read_dataset
from pytest_ragmetrics.datasets.row import DatasetRow as DatasetRow
from pytest_ragmetrics.datasets.selection import Where as Where
