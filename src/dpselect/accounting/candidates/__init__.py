"""Selecting among private candidates by thresholds and counts (Liu, Talwar 2019; Papernot, Steinke 2022, App. C)."""
