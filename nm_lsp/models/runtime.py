"""The one door to onnxruntime, which closes its telemetry before opening it.

Since 1.29 the official builds report to their maker by default, from Linux and macOS too: an identifier and a queue of
events under the user's cache folder, and an uploader. Nothing may leave the machine, so the variable that switches all
of it off is set before the library is loaded; it is read once, when the library starts. Windows has only the function.
No other module imports onnxruntime (a test holds that).
"""

from __future__ import annotations

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as ort

ort.disable_telemetry_events()

__all__ = ["ort"]
