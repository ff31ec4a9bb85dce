@echo off
python setup.py build bdist_wheel
