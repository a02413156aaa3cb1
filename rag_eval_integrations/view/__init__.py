"""The pages of this library, served to a browser: the runs of a folder as they grow, and a store.

`_runs` reads the folder, `_app` makes the pages by the code of `report` and lets nobody else in,
`_server` listens. Only this package imports starlette and uvicorn.
"""
