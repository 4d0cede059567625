"""Assert the answer quality of a RAG application in an ordinary pytest suite."""
