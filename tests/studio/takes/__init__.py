"""The recorder of takes."""
