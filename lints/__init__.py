"""What no general linter knows of this project: chores with one place, directions of imports, words.

Run `python -m lints`, or a rule alone: `python -m lints searches`. Each rule is one file of `lints/rules/`. Except a
line by a comment `# RULE: reason` on it, above it, or at the head of its function.
"""
