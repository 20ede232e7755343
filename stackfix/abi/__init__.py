"""What exported and undefined symbols tell: which releases a compiled file can load with. Pure, over records."""
