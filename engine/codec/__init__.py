"""The codecs, S2's DAC and Qwen's: audio to codes, codes to audio, whole or streamed."""

from engine.codec.codec_config import CodecConfig, Precision, TransformerConfig
from engine.codec.codec_layers import StreamState
from engine.codec.load import ONLY_DECODES, ONLY_ENCODES, fingerprint, load_codec, part_on
from engine.codec.model import Codec
from engine.codec.qwen_codec import QwenCodec, QwenCodecConfig, codec_of

__all__ = [
    "ONLY_DECODES", "ONLY_ENCODES", "Codec", "CodecConfig", "Precision", "QwenCodec", "QwenCodecConfig", "StreamState",
    "TransformerConfig", "codec_of", "fingerprint", "load_codec", "part_on",
]  # fmt: skip
