"""Injects faults into files, requests, disks and connections, and checks HMB's reaction."""
