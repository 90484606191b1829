"""Talks to a team with the official Python client of A2A.

Usage: a2a_client.py URL. The server's team is the one of tests/service/support.rs.
"""

import asyncio
import contextlib
import io
import sys
from pathlib import Path

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import get_artifact_text, get_message_text, new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

URL = sys.argv[1]


def check_equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def request(text, task=None, context_id=None):
    message = new_text_message(
        text,
        role=Role.ROLE_USER,
        task_id=task.id if task else None,
        context_id=task.context_id if task else context_id,
    )
    return SendMessageRequest(message=message)


async def send(client, *args, **named):
    """The task of a message that is not streamed."""
    responses = [response async for response in client.send_message(request(*args, **named))]
    check_equal(len(responses), 1)
    return responses[0].task


async def refused(error, call):
    try:
        await call
    except error:
        return
    raise AssertionError(f"there was no {error.__name__}")


async def plain(client):
    task = await send(client, "my bill")
    check_equal(task.status.state, TaskState.TASK_STATE_COMPLETED)
    check_equal([get_artifact_text(artifact) for artifact in task.artifacts], ["Billing: you said my bill"])
    check_equal(task.metadata["switchboard"]["handoffs"][0]["to"], "Billing")
    again = await client.get_task(GetTaskRequest(id=task.id))
    check_equal(again, task)
    second = await send(client, "and now?", context_id=task.context_id)
    check_equal(second.context_id, task.context_id)
    check_equal(get_artifact_text(second.artifacts[0]), "Billing: you said and now?")


async def streamed(client):
    text, states, first = "", [], None
    async for response in client.send_message(request("my bill")):
        first = first or response.WhichOneof("payload")
        if response.HasField("artifact_update"):
            text += get_artifact_text(response.artifact_update.artifact)
        if response.HasField("status_update"):
            states.append(response.status_update.status.state)
    check_equal(first, "task")
    check_equal(text, "Billing: you said my bill")
    check_equal(states[-1], TaskState.TASK_STATE_COMPLETED)


async def approval(plain_client, streaming_client):
    task = await send(plain_client, "refund my bill")
    check_equal(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
    assert "Billing wants to call refund" in get_message_text(task.status.message)
    states = []
    async for response in streaming_client.send_message(request("approve", task)):
        if response.HasField("status_update"):
            states.append(response.status_update.status.state)
    check_equal(states, [TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED])
    done = await plain_client.get_task(GetTaskRequest(id=task.id))
    check_equal(get_artifact_text(done.artifacts[0]), 'Billing: I got refunded {"amount":5}.')
    check_equal(len(done.history), 3)
    await refused(UnsupportedOperationError, send(plain_client, "approve", task))


async def person(client):
    task = await send(client, "a person")
    check_equal(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
    done = await send(client, "I am here.", task)
    check_equal(get_artifact_text(done.artifacts[0]), "I am here.")


async def cancel(streaming_client):
    stream = streaming_client.send_message(request("slow"))
    task = (await anext(stream)).task
    async for response in stream:
        if response.HasField("artifact_update"):
            break
    subscribed = streaming_client.subscribe(SubscribeToTaskRequest(id=task.id))
    check_equal((await anext(subscribed)).task.id, task.id)
    cancelled = await streaming_client.cancel_task(CancelTaskRequest(id=task.id))
    check_equal(cancelled.status.state, TaskState.TASK_STATE_CANCELED)
    last = [response async for response in subscribed][-1]
    check_equal(last.status_update.status.state, TaskState.TASK_STATE_CANCELED)
    await refused(TaskNotCancelableError, streaming_client.cancel_task(CancelTaskRequest(id=task.id)))
    await refused(TaskNotFoundError, streaming_client.get_task(GetTaskRequest(id="task_none")))


async def list_tasks(client):
    first = await client.list_tasks(ListTasksRequest(page_size=2))
    check_equal(len(first.tasks), 2)
    times = [task.status.timestamp.ToDatetime() for task in first.tasks]
    check_equal(times, sorted(times, reverse=True))
    seen, token = len(first.tasks), first.next_page_token
    while token:
        page = await client.list_tasks(ListTasksRequest(page_size=2, page_token=token))
        seen, token = seen + len(page.tasks), page.next_page_token
    check_equal(seen, first.total_size)


async def not_there(client):
    config = TaskPushNotificationConfig(task_id="task", url="https://hooks.example")
    await refused(PushNotificationNotSupportedError, client.create_task_push_notification_config(config))
    message = request("look")
    message.message.parts[0].media_type = "video/mp4"
    sent = client.send_message(message)
    await refused(ContentTypeNotSupportedError, anext(sent))


async def main():
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, URL).get_agent_card()
        check_equal([skill.name for skill in card.skills], ["Triage", "Billing", "Ann"])
        own = await A2ACardResolver(http, f"{URL}/a2a/support").get_agent_card()
        check_equal(own, card)
        for binding in ["JSONRPC", "HTTP+JSON"]:
            clients = [
                ClientFactory(
                    ClientConfig(streaming=streaming, httpx_client=http, supported_protocol_bindings=[binding])
                ).create(card)
                for streaming in (False, True)
            ]
            plain_client, streaming_client = clients
            await plain(plain_client)
            await streamed(streaming_client)
            await approval(plain_client, streaming_client)
            await person(plain_client)
            await cancel(streaming_client)
            await list_tasks(plain_client)
            await not_there(plain_client)
            print(f"{binding}: ok")


def run_the_guide():
    """Runs the client's code in docs/service.md."""
    guide = (Path(__file__).parents[4] / "docs" / "service.md").read_text()
    code = guide.split("\n## A2A\n")[1].split("```python\n")[1].split("```")[0]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code.replace("http://127.0.0.1:8080", URL), "docs/service.md", "exec"), {})
    check_equal(out.getvalue(), 'Billing: I got refunded {"amount":5}.')


asyncio.run(main())
run_the_guide()
