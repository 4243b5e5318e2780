"""The library on a real disk: crashes, copies, a disk that is full, leftovers."""
