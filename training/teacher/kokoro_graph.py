"""Reads Kokoro's int8 ONNX graph as float32: every integer product becomes the float product it approximates."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

_INTEGER_PRODUCTS = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}


class Node(NamedTuple):
    """One operation: its ONNX kind, the names of its inputs and outputs, its attributes, its own name."""

    kind: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    name: str


class _Graph:
    """The ONNX file's nodes and constants, with the maps needed for rewriting."""

    def __init__(self, path: Path) -> None:
        import onnx

        graph = onnx.load(str(path)).graph
        self.constants = {item.name: onnx.numpy_helper.to_array(item) for item in graph.initializer}
        self.nodes = [
            Node(item.op_type, list(item.input), list(item.output), _attributes(item), item.name) for item in graph.node
        ]
        self.outputs = [item.name for item in graph.output]
        self.inputs = {item.name for item in graph.input}
        self.producer = {name: node for node in self.nodes for name in node.outputs}
        self.consumers: dict[str, list[Node]] = defaultdict(list)
        for node in self.nodes:
            for name in node.inputs:
                self.consumers[name].append(node)

    def only_consumer(self, node: Node, kind: str) -> Node:
        """The only node that reads this one's output."""
        (consumer,) = self.consumers[node.outputs[0]]
        if consumer.kind != kind:
            raise ValueError(f"{node.name} is followed by {consumer.kind}, not by {kind}: another export of the model?")
        return consumer


def _attributes(node: Any) -> dict[str, Any]:
    import onnx

    attributes = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, onnx.TensorProto):
            value = torch.from_numpy(onnx.numpy_helper.to_array(value).copy())
        attributes[attribute.name] = (
            value.decode() if isinstance(value, bytes) else list(value) if _is_list(value) else value
        )
    return attributes


def _is_list(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, (str, bytes, Tensor))


def read_graph(path: Path) -> tuple[list[Node], dict[str, Tensor]]:
    """Nodes in an executable order, and their constants, all products in float32."""
    graph = _Graph(path)
    replaced: dict[str, Node] = {}  # by the output of the last node of a replaced chain
    dropped: set[str] = set()
    for node in graph.nodes:
        if node.kind in _INTEGER_PRODUCTS:
            new, chain = _float_product(graph, node)
            replaced[new.outputs[0]] = new
            dropped |= {member.outputs[0] for member in chain}
        elif node.kind == "DynamicQuantizeLSTM":
            replaced[node.outputs[0]] = _float_lstm(graph, node)
    nodes = [replaced.get(node.outputs[0], node) for node in graph.nodes if node.outputs[0] not in dropped]
    nodes = _in_order(_needed(nodes, graph.outputs), graph)
    read = {name for node in nodes for name in node.inputs}
    weights = {name: torch.from_numpy(value.copy()) for name, value in graph.constants.items() if name in read}
    return nodes, weights


def _float_product(graph: _Graph, node: Node) -> tuple[Node, list[Node]]:
    """Replace quantise, multiply, (add a bias,) cast, scale by one float product; returns it and the nodes replaced."""
    quantised = graph.producer[node.inputs[0]]
    follower = graph.consumers[node.outputs[0]][0]
    chain, bias = [node], []
    if follower.kind == "Add":
        other = next(name for name in follower.inputs if name != node.outputs[0])
        source = graph.producer[other]
        while source.kind != "Div":
            source = graph.producer[source.inputs[0]]
        bias = [name for name in source.inputs if name in graph.constants]
        chain.append(follower)
        follower = graph.only_consumer(follower, "Cast")
    chain.append(follower)
    scaled = graph.only_consumer(follower, "Mul")
    scales = graph.producer[next(name for name in scaled.inputs if name != follower.outputs[0])]
    (scale,) = [name for name in scales.inputs if name != quantised.outputs[1]]
    name = f"{node.inputs[1]}|float"
    zero = graph.constants[node.inputs[3]] if len(node.inputs) > 3 else np.zeros(1, np.int8)
    per_row = node.kind == "ConvInteger"  # products' weights have their output channels last
    graph.constants[name] = _dequantised(graph.constants[node.inputs[1]], graph.constants[scale], zero, per_row)
    kind = _INTEGER_PRODUCTS[node.kind]
    new = Node(kind, [quantised.inputs[0], name, *bias], scaled.outputs, node.attributes, node.name)
    return new, chain


def _dequantised(weight: np.ndarray, scale: np.ndarray, zero: np.ndarray, per_row: bool) -> np.ndarray:
    def shaped(x: np.ndarray) -> np.ndarray:
        x = x.astype(np.float32)
        if x.size == 1:
            return x.reshape(())
        return x.reshape((-1,) + (1,) * (weight.ndim - 1)) if per_row else x

    return (weight.astype(np.float32) - shaped(zero)) * shaped(scale)


def _float_lstm(graph: _Graph, node: Node) -> Node:
    names = []
    for part, scale, zero in ((1, 8, 9), (2, 10, 11)):
        values = graph.constants[node.inputs[part]].astype(np.float32)
        shift = graph.constants[node.inputs[zero]].astype(np.float32)
        factor = graph.constants[node.inputs[scale]].astype(np.float32)
        name = f"{node.inputs[part]}|float"
        graph.constants[name] = ((values - _by_direction(shift)) * _by_direction(factor)).transpose(0, 2, 1)
        names.append(name)
    return Node("LSTM", [node.inputs[0], *names, *node.inputs[3:8]], node.outputs, node.attributes, node.name)


def _by_direction(x: np.ndarray) -> np.ndarray:
    """Scales (directions,) or (directions, outputs), to be multiplied with (directions, inputs, outputs)."""
    return x[:, None, None] if x.ndim == 1 else x[:, None, :]


def _needed(nodes: list[Node], outputs: list[str]) -> list[Node]:
    """The nodes that the outputs depend on."""
    producer = {name: index for index, node in enumerate(nodes) for name in node.outputs}
    wanted, needed = list(outputs), set()
    while wanted:
        index = producer.get(wanted.pop())
        if index is not None and index not in needed:
            needed.add(index)
            wanted += nodes[index].inputs
    return [node for index, node in enumerate(nodes) if index in needed]


def _in_order(nodes: list[Node], graph: _Graph) -> list[Node]:
    """Sort nodes so that each comes after those whose results it reads."""
    known = {*graph.constants, *graph.inputs, ""}
    ordered: list[Node] = []
    rest = nodes
    while rest:
        later = []
        for node in rest:
            if known.issuperset(node.inputs):
                ordered.append(node)
                known.update(node.outputs)
            else:
                later.append(node)
        if len(later) == len(rest):
            raise ValueError(f"the graph has a cycle at {rest[0].name}")
        rest = later
    return ordered
