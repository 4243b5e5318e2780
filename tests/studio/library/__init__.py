"""The library on a real disk: crashes, backups, full disks, leftovers."""
