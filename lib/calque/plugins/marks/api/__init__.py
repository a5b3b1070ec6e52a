"""The functions by which programs and statements mark done sets, ask about them and wait for them."""
