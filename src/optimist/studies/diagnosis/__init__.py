"""What `optimist doctor` finds: the installation, the device, the disk, a dataset, a run or a study."""
