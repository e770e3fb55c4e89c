"""What is published beside the code: the site, the package's page, and the notes of a version."""
