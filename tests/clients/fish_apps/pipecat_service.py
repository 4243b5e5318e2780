"""Pipecat's service for Fish Audio: two sentences through a pipeline."""

import asyncio
import sys

from pipecat.frames.frames import EndFrame, Frame, TTSAudioRawFrame, TTSSpeakFrame, TTSStoppedFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineTask
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.fish.tts import FishAudioTTSService


class Listener(FrameProcessor):
    """Counts the audio that it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.stops = 0
        self.stopped = asyncio.Event()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TTSAudioRawFrame):
            self.seconds += len(frame.audio) / 2 / frame.sample_rate
        if isinstance(frame, TTSStoppedFrame):
            self.stopped.set()
        await self.push_frame(frame, direction)


async def main(url: str) -> None:
    service = FishAudioTTSService(api_key="any", settings=FishAudioTTSService.Settings(voice="clara"))
    service._base_url = url.replace("http", "ws", 1) + "/v1/tts/live"
    listener = Listener()
    task = PipelineTask(Pipeline([service, listener]))

    async def talk() -> None:
        for text in ("Hello there, this is a test.", "And this is another one."):
            listener.stopped.clear()
            before = listener.seconds
            await task.queue_frame(TTSSpeakFrame(text))
            await asyncio.wait_for(listener.stopped.wait(), 60)
            print("spoken:", round(listener.seconds - before, 2), "s")
            assert listener.seconds - before > 0.5, "there is no sound"
        await task.queue_frame(EndFrame())

    await asyncio.gather(PipelineRunner(handle_sigint=False).run(task), talk())


asyncio.run(main(sys.argv[1]))
