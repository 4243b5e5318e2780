"""Weights in twelve bits, and the products that read them."""

from engine.kernels.packed12.packed_gemm import PACKED12_ROWS, gated_packed12
from engine.kernels.packed12.packed_gemv import gemv_packed12
from engine.kernels.packed12.weights import Packed12

__all__ = ["PACKED12_ROWS", "Packed12", "gated_packed12", "gemv_packed12"]
