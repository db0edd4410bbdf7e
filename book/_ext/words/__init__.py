"""The words of pages, scripts and reports, found where they stand."""
