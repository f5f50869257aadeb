"""What `tools/lab.py` is made of: the network, the hosts, the images. Standard library only."""
