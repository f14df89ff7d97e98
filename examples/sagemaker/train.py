"""Train as one host of a SageMaker job: TF_CONFIG from the hosts' names, then `tfformer train`.

python train.py recipe.yaml --run-dir /shared/runs/mine --set training.strategy=multi_worker
"""

import json
import os
import sys

PORT = 2222

hosts = sorted(json.loads(os.environ["SM_HOSTS"]))
number = hosts.index(os.environ["SM_CURRENT_HOST"])
os.environ["TF_CONFIG"] = json.dumps(
    {
        "cluster": {"worker": [f"{host}:{PORT}" for host in hosts]},
        "task": {"type": "worker", "index": number},
    }
)
os.execvp("tfformer", ["tfformer", "train", *sys.argv[1:]])
