# Packages of Python are installed into a new environment and used; one is removed.
set -e
python3 -m venv there
there/bin/pip install --quiet --no-cache-dir --disable-pip-version-check numpy rich pillow
sync
echo 3 > /proc/sys/vm/drop_caches
there/bin/python -c 'import numpy, rich.console, PIL.Image'
there/bin/pip uninstall --quiet --yes --disable-pip-version-check pillow
