"""The change of a target from the policy that its replica was made under to another policy."""
