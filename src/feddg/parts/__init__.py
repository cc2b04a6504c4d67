"""What methods put into local training: terms, transforms and steps, pure and stackable."""
