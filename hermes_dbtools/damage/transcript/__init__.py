"""What a conversation says when it is read again: calls and their results, times, copies, empty messages."""
