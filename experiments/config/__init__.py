"""What users write: studies, their matrices, and what the command line changes of them."""
