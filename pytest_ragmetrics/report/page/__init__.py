"""What stands on the page, laid out for the templates: behind ``html``."""
