"""Proofs about the whole product: real processes, a scripted model, misbehaving servers."""
