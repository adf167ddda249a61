"""Everything that a project needs running, kept running: started, watched, restarted, stopped."""
