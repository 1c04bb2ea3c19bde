"""Rules for chat groups and products in a social world."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mesa_llm.errors import ToolError
from mesa_llm.records import ActionResult
from mesa_llm.text import MAX_NAME, one_line, quoted
from mesa_llm.tools.tool import action
from mesa_llm_models.social.world.settings import SocialSettings
from mesa_llm_models.social.world.state import SocialState

MAX_MESSAGE = 2000
"""Maximum number of characters of a message in a group."""

MAX_AMOUNT = 1000
"""Maximum number of items in one purchase."""

GroupId = Annotated[int, Field(gt=0)]
GroupName = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Message = Annotated[str, Field(min_length=1, max_length=MAX_MESSAGE)]
ProductName = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Amount = Annotated[int, Field(ge=1, le=MAX_AMOUNT)]


class SocialGroups(SocialState):
    """Chat groups, where only members write and read, and products, which anyone may buy."""

    def __init__(self, settings: SocialSettings, **options: Any) -> None:
        """Create the products. The arguments are those of `SocialState`."""
        super().__init__(settings, **options)
        self.n_groups = 0
        rows = enumerate(settings.products, start=1)
        self.store.write_many("INSERT INTO product (product_id, product_name) VALUES (?, ?)", rows)

    @action(options={"product_name": "products"})
    def purchase_product(self, agent_id: int, product_name: ProductName, amount: Amount = 1) -> ActionResult:
        """Buy a product that is on offer.

        Args:
            product_name: Name of the product, as it stands in the offer.
            amount: Number of pieces.
        """
        self.acting(agent_id)
        if product_name not in self.settings.products:
            offer = ", ".join(self.settings.products)
            refusal = "no_product" if offer else "no_offer"
            raise ToolError(self.wording.reason_text(refusal, product=quoted(product_name, MAX_NAME), offer=offer))
        if not 1 <= amount <= MAX_AMOUNT:
            raise ToolError(self.wording.reason_text("amount", amount=amount, maximum=MAX_AMOUNT))
        product_id = 1 + self.settings.products.index(product_name)
        self.store.write("UPDATE product SET sales = sales + ? WHERE product_id = ?", amount, product_id)
        self.store.write(
            "INSERT INTO purchase (user_id, product_id, amount, created_at) VALUES (?, ?, ?, ?)",
            *(agent_id, product_id, amount, self.step),
        )
        self.trace(agent_id, "purchase_product", product_name=product_name, purchase_num=amount)
        return ActionResult(
            self.wording.result_text("purchase_product", amount=amount, product=product_name),
            product=product_name,
            amount=amount,
        )

    @action
    def create_group(self, agent_id: int, name: GroupName) -> ActionResult:
        """Open a chat group; others can join it.

        Args:
            name: Name of the group.
        """
        self.acting(agent_id)
        group_name = one_line(self.cleaned(name, "name"), MAX_NAME)
        if not group_name:
            raise ToolError(self.wording.reason_text("empty", name="name"))
        self.n_groups += 1
        self.store.write(
            "INSERT INTO chat_group (group_id, user_id, name, created_at) VALUES (?, ?, ?, ?)",
            *(self.n_groups, agent_id, group_name, self.step),
        )
        self._add_member(self.n_groups, agent_id)
        self.trace(agent_id, "create_group", group_id=self.n_groups, group_name=group_name)
        text = self.wording.result_text("create_group", group_id=self.n_groups, name=quoted(group_name))
        return ActionResult(text, group_id=self.n_groups)

    @action(options={"group_id": "open_groups"})
    def join_group(self, agent_id: int, group_id: GroupId) -> ActionResult:
        """Join a chat group, to read and write in it.

        Args:
            group_id: Number of the group.
        """
        self.acting(agent_id)
        name = self._group_name(group_id)
        if self._is_member(agent_id, group_id):
            raise ToolError(self.wording.reason_text("in_group", group_id=group_id))
        self._add_member(group_id, agent_id)
        self.trace(agent_id, "join_group", group_id=group_id)
        return ActionResult(
            self.wording.result_text("join_group", group_id=group_id, name=quoted(name)), group_id=group_id
        )

    @action(options={"group_id": "groups"})
    def leave_group(self, agent_id: int, group_id: GroupId) -> ActionResult:
        """Leave a chat group.

        Args:
            group_id: Number of a group you are in.
        """
        self.acting(agent_id)
        name = self._group_name(group_id)
        self._require_member(agent_id, group_id)
        self.store.write("DELETE FROM group_members WHERE agent_id = ? AND group_id = ?", agent_id, group_id)
        self.store.write("UPDATE chat_group SET members = members - 1 WHERE group_id = ?", group_id)
        self.trace(agent_id, "leave_group", group_id=group_id)
        return ActionResult(
            self.wording.result_text("leave_group", group_id=group_id, name=quoted(name)), group_id=group_id
        )

    @action(options={"group_id": "groups"})
    def send_to_group(self, agent_id: int, group_id: GroupId, message: Message) -> ActionResult:
        """Write a message to a chat group; only its members can read it.

        Args:
            group_id: Number of a group you are in.
            message: The words of your message.
        """
        self.acting(agent_id)
        name = self._group_name(group_id)
        self._require_member(agent_id, group_id)
        content = self.cleaned(message, "message", MAX_MESSAGE)
        self.store.write(
            "INSERT INTO group_messages (group_id, sender_id, content, sent_at) VALUES (?, ?, ?, ?)",
            *(group_id, agent_id, content, self.step),
        )
        self.trace(agent_id, "send_to_group", group_id=group_id, content=content)
        return ActionResult(
            self.wording.result_text("send_to_group", group_id=group_id, name=quoted(name)), group_id=group_id
        )

    def _add_member(self, group_id: int, user_id: int) -> None:
        insert = "INSERT INTO group_members (agent_id, group_id, joined_at) VALUES (?, ?, ?)"
        self.store.write(insert, user_id, group_id, self.step)
        self.store.write("UPDATE chat_group SET members = members + 1 WHERE group_id = ?", group_id)

    def _group_name(self, group_id: int) -> str:
        """Return the name of a group.

        Raises:
            ToolError: If there is no such group.
        """
        query = "SELECT name FROM chat_group WHERE group_id = ?"
        row = self.store.one(query, group_id) if 0 < group_id <= self.n_groups else None
        if row is None:
            raise ToolError(self.wording.reason_text("no_group", group_id=group_id))
        return str(row[0])

    def _is_member(self, agent_id: int, group_id: int) -> bool:
        query = "SELECT 1 FROM group_members WHERE agent_id = ? AND group_id = ?"
        return self.store.one(query, agent_id, group_id) is not None

    def _require_member(self, agent_id: int, group_id: int) -> None:
        if not self._is_member(agent_id, group_id):
            refusal = "not_in_open_group" if "join_group" in self.settings.actions else "not_in_group"
            raise ToolError(self.wording.reason_text(refusal, group_id=group_id))
