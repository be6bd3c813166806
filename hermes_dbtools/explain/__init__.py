"""Why a session fails, or what the lines of a log mean: asks the file and its surroundings, changes nothing."""
