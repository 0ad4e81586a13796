"""What a call did to the files of the workspace, seen by looking before and after."""
