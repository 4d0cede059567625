"""What a text says that would talk a judge over, language by language."""
