"""Podcast feeds of projects: links created, listed and revoked by the owner; feed, cover and episodes without a key."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from longform.feeds import Feeds, write_rss
from longform.library.project_repository import ProjectLibrary
from studio.api.access import SHARED
from studio.api.body import JsonBody
from studio.api.origins import address_of
from studio.api.queued import look_up, project_router
from studio.api.routes.share_routes import GUARDED, NewShare, share_json
from studio.api.sending import file_reader, range_response, until_hangup
from studio.errors import NotFound
from studio.settings import Settings

FEED = ("project.feed", "project", "/feed.xml")


class FeedRoutes:
    def __init__(self, feeds: Feeds, library: ProjectLibrary, settings: Settings) -> None:
        self._feeds, self._projects, self._settings = feeds, library.projects, settings

    def router(self) -> APIRouter:
        routes = project_router()
        path = "/v1/projects/{project_id}/feeds"
        routes.get(path)(self.list_feeds)
        routes.post(path, status_code=201)(self.add_feed)
        routes.delete(path + "/{token}")(self.remove_feed)
        routes.get(SHARED + "{token}/feed.xml", include_in_schema=False)(self.show)
        routes.get(SHARED + "{token}/{name}", include_in_schema=False)(self.file)
        return routes

    def list_feeds(self, project_id: str, request: Request) -> JSONResponse:
        """The links of a project's podcast feed, the days that a new one may last (0: there are none), and
        ``problem``: which parts have lost their audio, null without any."""
        self._projects.check(project_id, request.state.owner_filter, "own")
        data = [share_json(share, *FEED) for share in self._feeds.links.of(project_id)]
        answer = {"object": "list", "data": data, "share_days": self._settings.share_days}
        return JSONResponse(answer | {"problem": self._feeds.problem(project_id) if data else None})

    def add_feed(self, project_id: str, body: JsonBody[NewShare], request: Request) -> JSONResponse:
        """Create a link to a podcast feed of this project, with a finished chapter as an episode: {"days": 30}. Anyone
        with the link can listen. STUDIO_SHARE_DAYS enables links and limits their days."""
        days = body.checked(self._settings.share_days, "project_id")
        self._projects.check(project_id, request.state.owner_filter, "own")
        return JSONResponse(share_json(self._feeds.links.add(project_id, days), *FEED), 201)

    def remove_feed(self, project_id: str, token: str, request: Request) -> JSONResponse:
        """Revoke a link, with immediate effect."""
        self._projects.check(project_id, request.state.owner_filter, "own")
        self._feeds.links.remove(project_id, token)
        self._feeds.tidy()
        return JSONResponse({"token": token, "object": "project.feed.deleted", "deleted": True})

    async def show(self, token: str, request: Request) -> Response:
        """The feed in RSS 2.0."""
        try:
            project_id = await until_hangup(request, look_up(self._project_id, token))
            feed = await until_hangup(request, self._feeds.feed(project_id, request.state.caller))
        except NotFound as error:
            return await look_up(self._gone, error)
        address = address_of(request, self._settings.root_path + SHARED)
        text = await look_up(write_rss, feed, f"{address}{token}/")
        return Response(text, headers=GUARDED, media_type="application/rss+xml")

    def file(self, token: str, name: str, request: Request) -> Response:
        """An episode, with byte ranges, or the cover."""
        try:
            project_id = self._project_id(token)
            cover = self._projects.cover(project_id, None)
            if cover is not None and name == cover.file_name:
                return Response(cover.image, headers=GUARDED, media_type=cover.media_type)
            path = self._feeds.file(project_id, name)
            return range_response(request, path.stat().st_size, path.stem, file_reader(path), "audio/mpeg", GUARDED)
        except NotFound as error:
            return self._gone(error)

    def _gone(self, error: NotFound) -> Response:
        """Blocking."""
        self._feeds.tidy()
        return Response(error.message, 404, GUARDED, "text/plain")

    def _project_id(self, token: str) -> str:
        """The id of a link's project. Blocking. Raises NotFound."""
        if not self._settings.share_days:
            raise NotFound("sharing by links is disabled", "token")
        return self._feeds.links.item_id(token)
