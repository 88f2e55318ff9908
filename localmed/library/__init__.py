"""What is stored: documents, dense and lexical index, generations, withdrawals."""
