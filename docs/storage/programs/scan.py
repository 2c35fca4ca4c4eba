import struct
import zlib

HEADER = struct.Struct(">II")  # length and CRC


def encode(batch: bytes) -> bytes:
    return HEADER.pack(len(batch), zlib.crc32(batch)) + batch


def end_of_intact_batches(data: bytes) -> int:
    position = 0
    while position + HEADER.size <= len(data):
        length, crc = HEADER.unpack_from(data, position)
        batch = data[position + HEADER.size : position + HEADER.size + length]
        if len(batch) < length or zlib.crc32(batch) != crc:
            break  # an incomplete or damaged batch: the log ends here
        position += HEADER.size + length
    return position


log = encode(b"order 1") + encode(b"order 2") + encode(b"order 3")
print("whole file:", end_of_intact_batches(log), "of", len(log))
print("cut file:  ", end_of_intact_batches(log[:-4]), "of", len(log) - 4)
print("one bit:   ", end_of_intact_batches(log.replace(b"order 2", b"order 3")), "of", len(log))
