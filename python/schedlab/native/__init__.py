"""The types of the engine's JSON answers: one module for each kind of answer, one type for each struct in Rust.

`python/tests/test_native.py` compares the types with the structs and with answers of the engine;
`python/tests/test_native_shapes.py` renders every shape that they allow.
"""
