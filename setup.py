"""For tools that look for setup.py. pyproject.toml describes the package."""

from setuptools import setup

setup()
