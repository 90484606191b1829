"""Writes down speech for switchboard, until standard input ends.

In: a length of four bytes, little-endian, and so many bytes of PCM: 16-bit, little-endian, one channel, 16 kHz.
Out: a line of JSON, {"text": ...} or {"error": ...}; at the start {"ready": true} or {"error": ...}.
"""

import json
import struct
import sys


def answer(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main():
    try:
        from pocketsphinx import Decoder

        decoder = Decoder(samprate=16000, loglevel="FATAL")
    except ImportError as error:
        answer({"error": str(error), "missing": True})
        return
    except Exception as error:
        answer({"error": str(error)})
        return
    answer({"ready": True})
    while True:
        head = sys.stdin.buffer.read(4)
        if len(head) < 4:
            return
        (length,) = struct.unpack("<I", head)
        speech = sys.stdin.buffer.read(length)
        if len(speech) < length:
            return
        try:
            decoder.start_utt()
            decoder.process_raw(speech, full_utt=True)
            decoder.end_utt()
            found = decoder.hyp()
            answer({"text": found.hypstr if found else ""})
        except Exception as error:
            answer({"error": str(error)})


main()
