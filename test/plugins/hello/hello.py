"""Says hello from Python: the same lines as every other hello plugin."""

import os
import platform
import sys


def primes_below(limit):
    is_prime = [True] * limit
    for n in range(2, limit):
        if is_prime[n]:
            for multiple in range(n * n, limit, n):
                is_prime[multiple] = False
    return sum(is_prime[2:])


greeting = f"hello from Python {platform.python_version()}"
print(greeting)
for argument in sys.argv[1:]:
    print(f"argument: {argument}")
print(f"standard input: {sys.stdin.readline().rstrip() or '(empty)'}")
print(f"directory: {os.getcwd()}")
print(f"primes below 1000: {primes_below(1000)}")
os.makedirs("out", exist_ok=True)
with open("out/hello.txt", "w") as file:
    file.write(greeting + "\n")
print("wrote: out/hello.txt")
