"""The tools of a server: judged, adapted, called, and what comes back."""
