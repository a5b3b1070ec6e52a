"""The statements `MARK SET DONE` and `SHOW SETS DONE`."""
