"""dpselect where people work: each module needs what it is named after, and the extra of that name if there is one."""
