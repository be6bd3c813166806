"""Files that the store names: images, attachments, pasted text."""
