"""Golden sets out of documents: cutting passages, drafting questions with a judge, and the file of rows."""
