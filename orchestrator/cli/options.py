"""Options that several verbs share, declared once."""

from __future__ import annotations

import click

on_option = click.option("--on", metavar="HOST[,HOST]", help="names of hosts.yaml or ssh_config, user@host, or local")
hosts_option = click.option("--hosts", "hosts_file", metavar="FILE", help="inventory; default ./hosts.yaml, then yours")
results_option = click.option("--results", metavar="DIR", help="where records are; $GATE0_RESULTS, else ./results")
json_option = click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="no progress")
force_option = click.option("--force", is_flag=True, help="take a host's lock from an owner that is gone")
workload_option = click.option("--workload", "workloads", multiple=True, metavar="NAME", help="load to run; repeatable")
set_option = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="change the workload, as concurrency=1,4"
)
