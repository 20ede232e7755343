"""Whether this process may change an environment as a plan says; asked while it is planned, for a dry run, too."""

from __future__ import annotations

from stackfix.apply.managed import must_be_ours
from stackfix.apply.preflight import check_access, check_plan, check_room
from stackfix.apply.transaction import made_before, readable
from stackfix.apply.tree import Tree
from stackfix.errors import StackfixError
from stackfix.plan.records import Plan


class DiskRights:
    """Fills plan.effect_world.Rights.

    `refused`: why nothing at all may be changed here. Then plans are judged as if it might: with another user, or where
    the same tree can be written, they could be made.
    """

    def __init__(self, prefix: str, *, break_system: bool) -> None:
        self._prefix = prefix
        self.has_refused = False        # one plan at least
        self.refused = self._whole(break_system=break_system)

    def why_not(self, plan: Plan) -> StackfixError | None:
        """What would stop this plan: a link that leads out, a folder or file that is not ours to change, no room."""
        try:
            with Tree(self._prefix) as tree, readable(tree):
                check_plan(plan, tree)
                if self.refused is None:
                    check_access(plan, tree, made_before(tree))
                    check_room(plan, tree)
        except StackfixError as error:
            self.has_refused = True
            return error
        return None

    def _whole(self, *, break_system: bool) -> StackfixError | None:
        try:
            with Tree(self._prefix) as tree, readable(tree):
                must_be_ours(tree, break_system=break_system)
        except StackfixError as error:
            return error
        return None
