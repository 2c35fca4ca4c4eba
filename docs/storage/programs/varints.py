def varint(number: int) -> bytes:
    zigzag = 2 * number if number >= 0 else -2 * number - 1
    encoded = b""
    while zigzag >= 128:
        encoded += bytes([zigzag % 128 + 128])  # seven bits; 128 sets the high bit, because more bytes follow
        zigzag //= 128
    return encoded + bytes([zigzag])


for number in (0, -1, 1, 18, 63, 64, 100, -100, 1_000_000):
    print(f"{number:>9}  {varint(number).hex(' ')}")
