"""Save speech from a running studio with the SDK of OpenAI: python examples/call_the_api.py URL FILE

It needs the package openai. The URL is the studio's address, such as http://127.0.0.1:7860.
"""

import sys

from openai import OpenAI

url, path = sys.argv[1:3]
client = OpenAI(base_url=f"{url}/v1", api_key="one of STUDIO_API_KEYS, or anything without them")
speech = client.audio.speech.with_streaming_response
with speech.create(model="tts-1", voice="clara", input="Hello from the API.", response_format="mp3") as response:
    response.stream_to_file(path)
