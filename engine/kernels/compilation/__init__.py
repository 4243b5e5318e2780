"""Kernels compiled before they are launched, side by side, and where nothing is kept yet in processes of their own."""
