"""Text in both languages: sentences, quantities, medicines, names, negation; the tables beside them."""
