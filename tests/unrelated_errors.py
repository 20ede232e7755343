"""Errors that have nothing to do with a GPU stack, as people paste them: none of them may be claimed.

Left out: messages about GLIBC and GLIBCXX versions, which mean the same whoever asks, and Python refusing a system-wide
installation (PEP 668), which is explained for whatever shall be installed.
"""

from __future__ import annotations

from collections.abc import Mapping

UNRELATED: Mapping[str, str] = {
    # numpy and its family
    "numpy-dtype-size": (
        'File "pandas/_libs/interval.pyx", line 1, in init pandas._libs.interval\n'
        "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C "
        "header, got 88 from PyObject"),
    "numpy-attribute": (
        "AttributeError: module 'numpy' has no attribute 'float'.\n"
        "`np.float` was a deprecated alias."),
    "numpy-broadcast": "ValueError: operands could not be broadcast together with shapes (3,4) (5,4)",
    "numpy-build": (
        "error: Failed to build `numpy==1.21.0`\n"
        "  cause: The build backend returned an error\n"
        "AttributeError: module 'pkgutil' has no attribute 'ImpImporter'"),
    "pandas-key": (
        "Traceback (most recent call last):\n"
        '  File "a.py", line 3, in <module>\n'
        "    df['price']\n"
        "KeyError: 'price'"),
    "scipy-import": (
        "ImportError: cannot import name 'gaussian' from 'scipy.signal' "
        "(/env/lib/python3.12/site-packages/scipy/signal/__init__.py)"),
    # the network
    "tls-certificate": (
        "requests.exceptions.SSLError: HTTPSConnectionPool(host='host.example', port=443): Max retries "
        "exceeded with url: /simple/torch/ (Caused by SSLError(SSLCertVerificationError(1, '[SSL: "
        "CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate in certificate chain "
        "(_ssl.c:1006)')))"),
    "tls-version": "ssl.SSLError: [SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1131)",
    "proxy": (
        "WARNING: Retrying (Retry(total=4, connect=None, read=None)) after connection broken by "
        "'ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 407 Proxy Authentication "
        "Required'))': /simple/torch/"),
    "dns": (
        "urllib3.exceptions.NameResolutionError: Failed to resolve 'host.example' ([Errno -3] Temporary "
        "failure in name resolution)"),
    "http-429": (
        "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: "
        "https://host.example/m"),
    "http-503": (
        "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: "
        "https://host.example/api"),
    "gated-model": (
        "OSError: You are trying to access a gated repo.\n"
        "Make sure to have access to it at the page of the model.\n"
        "403 Client Error. Cannot access gated repo for url "
        "https://host.example/meta/model/resolve/main/config.json."),
    "model-not-found": "OSError: bert-base-uncasd is not a local folder and is not a valid model identifier",
    "timeout": "TimeoutError: [Errno 110] Connection timed out",
    # memory and disk
    "cuda-out-of-memory": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 23.69 GiB of which 1.19 GiB is free. Including non-PyTorch memory, this process has "
        "22.49 GiB memory in use."),
    "cpu-out-of-memory": (
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 14.9 GiB for an array with shape "
        "(2000000000,) and data type float64"),
    "process-killed": (
        "Epoch 3/10\n"
        " 45%|####5     | 450/1000 [10:02<12:11,  1.33s/it]\n"
        "Killed"),
    "malloc": (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate "
        "memory: you tried to allocate 12884901888 bytes. Error code 12 (Cannot allocate memory)"),
    "disk-full": "OSError: [Errno 28] No space left on device: '/home/u/.cache/pip/http/1/2/3'",
    "shared-memory": (
        "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error. It is possible that "
        "dataloader's workers are out of shared memory. Please try to raise your shared memory limit."),
    # programs that use torch, and are wrong themselves
    "shape-mismatch": "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x512 and 768x10)",
    "size-mismatch": (
        "RuntimeError: Error(s) in loading state_dict for ResNet:\n"
        "\tsize mismatch for fc.weight: copying a param with shape torch.Size([1000, 512]) from checkpoint, "
        "the shape in current model is torch.Size([10, 512])."),
    "device-mixed": (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
        "and cpu!"),
    "device-side-assert": (
        "RuntimeError: CUDA error: device-side assert triggered\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
        "might be incorrect."),
    "index-assert": (
        "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
        "thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed."),
    "nan-loss": (
        "ValueError: Expected parameter loc of distribution Normal to satisfy the constraint Real(), but "
        "found invalid values: tensor([[nan, nan]], device='cuda:0')"),
    "autograd": (
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [torch.cuda.FloatTensor [64, 10]] is at version 2; expected version 1 instead."),
    "user-type": "TypeError: forward() missing 1 required positional argument: 'attention_mask'",
    "user-attribute": "AttributeError: 'NoneType' object has no attribute 'shape'",
    "user-name": "NameError: name 'toch' is not defined",
    "user-index": (
        "Traceback (most recent call last):\n"
        '  File "/home/u/train.py", line 9, in <module>\n'
        "    print(rows[7])\n"
        "IndexError: list index out of range"),
    "user-syntax": (
        '  File "train.py", line 12\n'
        "    if x = 3:\n"
        "       ^^^^^\n"
        "SyntaxError: invalid syntax. Maybe you meant '==' or ':=' instead of '='?"),
    "tokenizer": "ValueError: Asking to pad but the tokenizer does not have a padding token.",
    "keyboard": (
        "Traceback (most recent call last):\n"
        '  File "a.py", line 2, in <module>\n'
        "    time.sleep(9)\n"
        "KeyboardInterrupt"),
    "pickle-attribute": "AttributeError: Can't pickle local object 'main.<locals>.<lambda>'",
    "deprecation": (
        "FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated. Please use "
        "`torch.amp.autocast('cuda', args...)` instead."),
    # modules and libraries that are not of the stack
    "module-yaml": "ModuleNotFoundError: No module named 'yaml'",
    "module-cv2": "ModuleNotFoundError: No module named 'cv2'",
    "module-own": "ModuleNotFoundError: No module named 'utils.dataset'; 'utils' is not a package",
    "module-distutils": "ModuleNotFoundError: No module named 'distutils'",
    "module-packaging-at-run-time": (
        "Traceback (most recent call last):\n"
        '  File "/home/u/app.py", line 1, in <module>\n'
        "    from packaging.version import Version\n"
        "ModuleNotFoundError: No module named 'packaging'"),
    "libgl": "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
    "libsndfile": (
        "OSError: cannot load library 'libsndfile.so': libsndfile.so: cannot open shared object file: No "
        "such file or directory"),
    "libxcb": 'qt.qpa.plugin: Could not load the Qt platform plugin "xcb" in "" even though it was found.',
    "libpq": "ImportError: libpq.so.5: cannot open shared object file: No such file or directory",
    "libpython": (
        "error while loading shared libraries: libpython3.10.so.1.0: cannot open shared object file: No such "
        "file or directory"),
    "libssl": "ImportError: libssl.so.1.1: cannot open shared object file: No such file or directory",
    "symbol-protobuf": (
        "ImportError: "
        "/env/lib/python3.10/site-packages/google/protobuf/pyext/_message.cpython-310-x86_64-linux-gnu.so: "
        "undefined symbol: _ZN6google8protobuf8internal16InternalMetadata3InitEv"),
    "symbol-python": (
        "ImportError: /env/lib/python3.9/site-packages/foo.so: undefined symbol: PyUnicodeUCS2_AsUTF8String"),
    "symbol-sqlite": (
        "ImportError: /usr/lib/python3.8/lib-dynload/_sqlite3.cpython-38-x86_64-linux-gnu.so: undefined "
        "symbol: sqlite3_trace_v2"),
    "symbol-opencv": (
        "ImportError: /usr/local/lib/libopencv_highgui.so.4.5: undefined symbol: _ZN2cv6detail17checkMatDepth"),
    "symbol-ffmpeg": (
        "ffmpeg: symbol lookup error: /lib/x86_64-linux-gnu/libavfilter.so.7: undefined symbol: "
        "av_hwdevice_ctx_create_derived_opts, version LIBAVUTIL_56"),
    "symbol-icu": "node: symbol lookup error: node: undefined symbol: u_charsToUChars_70",
    "symbol-mkl": (
        "INTEL MKL ERROR: /opt/conda/lib/libmkl_avx512.so: undefined symbol: "
        "mkl_sparse_optimize_bsr_trsm_i8.\n"
        "Intel MKL FATAL ERROR: Cannot load libmkl_avx512.so or libmkl_def.so."),
    "symbol-mpi": (
        "python: symbol lookup error: /usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3/mca_pmix_pmix2x.so: "
        "undefined symbol: pmix_value_load"),
    "symbol-openssl": (
        "ImportError: /lib/x86_64-linux-gnu/libssl.so.3: version `OPENSSL_3.2.0' not found (required by "
        "/env/lib/python3.12/lib-dynload/_ssl.cpython-312-x86_64-linux-gnu.so)"),
    "symbol-ffi": (
        "ImportError: /lib/x86_64-linux-gnu/libp11-kit.so.0: undefined symbol: ffi_type_pointer, version "
        "LIBFFI_BASE_7.0"),
    # installers, about other packages
    "conflict-unrelated-pip": (
        "ERROR: Cannot install baz==1.0 and foo==1.0 because these package versions have conflicting "
        "dependencies.\n"
        "\n"
        "The conflict is caused by:\n"
        "    foo 1.0 depends on bar==1\n"
        "    baz 1.0 depends on bar==2\n"
        "\n"
        "To fix this you could try to:\n"
        "1. loosen the range of package versions you've specified\n"
        "\n"
        "ERROR: ResolutionImpossible: for help visit"),
    "conflict-unrelated-uv": (
        "error: No solution found when resolving dependencies\n"
        "  cause: Because all versions of baz depend on bar==2 and all versions of foo depend on bar==1, we "
        "can conclude that all versions of baz and all versions of foo are incompatible.\n"
        "         And because you require foo and baz, we can conclude that your requirements are "
        "unsatisfiable."),
    "pin-unrelated": "requests 2.31.0 requires urllib3<3,>=1.21.1, but you have urllib3 3.0.0 which is incompatible.",
    "not-found-unrelated": (
        "ERROR: Could not find a version that satisfies the requirement nonexistent-thing==9 (from versions: "
        "none)\n"
        "ERROR: No matching distribution found for nonexistent-thing==9"),
    "hash-unrelated": (
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the "
        "package versions, please update the hashes. Otherwise, examine the package contents carefully; "
        "someone may have tampered with them.\n"
        "    idna==3.7 from https://host.example/idna-3.7-py3-none-any.whl (from -r r.txt (line 1)):\n"
        "        Expected sha256 0000\n"
        "             Got        1111"),
    "wheel-unrelated": "ERROR: lxml-4.9.1-cp39-cp39-win_amd64.whl is not a supported wheel on this platform.",
    "build-unrelated": (
        "  Building wheel for psycopg2 (setup.py): finished with status 'error'\n"
        "      Error: pg_config executable not found.\n"
        "  ERROR: Failed building wheel for psycopg2\n"
        "ERROR: Could not build wheels for psycopg2, which is required"),
    "build-header-unrelated": (
        "src/lxml/etree.c:99:10: fatal error: libxml/xmlversion.h: No such file or directory\n"
        "compilation terminated.\n"
        "error: command '/usr/bin/gcc' failed with exit code 1"),
    "conda-unrelated": (
        "PackagesNotFoundError: The following packages are not available from current channels:\n"
        "\n"
        "  - notapackage=1.0"),
    "conda-glibc-unrelated": (
        "UnsatisfiableError: The following specifications were found to be incompatible with your system:\n"
        "\n"
        "  - feature:/linux-64::__glibc==2.31=0\n"
        "  - conda=23.10.0 -> libgcc-ng -> __glibc[version='>=2.17']\n"
        "\n"
        "Your installed version is: 2.31"),
    "pip-broken": (
        "ImportError: cannot import name 'main' from 'pip' "
        "(/usr/local/lib/python3.8/dist-packages/pip/__init__.py)"),
    "distutils-unrelated": (
        "ERROR: Cannot uninstall 'PyYAML'. It is a distutils installed project and thus we cannot accurately determine "
        "which files belong to it"),
    "conda-missing-unrelated": "Encountered problems while solving:\n  - nothing provides requested gdal 9.9.*",
    "locked-without-wheel-unrelated": (
        "error: Distribution `pywin32==306 @ registry+https://host.example/simple` can't be installed because it "
        "doesn't have a source distribution or wheel for the current platform"),
    "build-of-an-old-helper": (
        "error: Failed to build `markupsafe==1.0`\n  cause: The build backend returned an error\n"
        "ImportError: cannot import name 'Feature' from 'setuptools'"),
    "killed-after-nvcc": (
        "$ nvcc --version\nnvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.1, V12.1.105\n"
        "$ python -c 'import train'\nKilled"),
    "key-error-below-the-user-site": (
        'Traceback (most recent call last):\n  File "/opt/miniconda3/envs/x/lib/python3.10/runpy.py", line 196\n'
        '  File "/home/u/.local/lib/python3.10/site-packages/torch/utils/data/dataset.py", line 9, in __getitem__\n'
        "KeyError: 'label'"),
    "ninja-unrelated": "ninja: error: loading 'build.ninja': No such file or directory",
    # other tools
    "docker-daemon": (
        "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
        "running?"),
    "docker-manifest": "Error response from daemon: manifest for python:3.99 not found: manifest unknown",
    "npm": (
        "npm ERR! code ERESOLVE\n"
        "npm ERR! ERESOLVE unable to resolve dependency tree\n"
        "npm ERR! Found: react@18.2.0"),
    "rust": (
        "error[E0382]: borrow of moved value: `s`\n"
        " --> src/main.rs:4:20"),
    "rust-missing": (
        "error: can't find Rust compiler\n"
        "ERROR: Failed building wheel for tokenizers"),
    "go": "./main.go:7:2: undefined: fmt.Printn",
    "gcc-syntax": (
        "main.cpp:5:12: error: expected ';' before 'return'\n"
        "    5 |   int x = 3\n"
        "      |            ^"),
    "linker": (
        "/usr/bin/ld: main.o: in function `main':\n"
        "main.c:(.text+0x9): undefined reference to `frobnicate'\n"
        "collect2: error: ld returned 1 exit status"),
    "make": "make: *** No rule to make target 'all'.  Stop.",
    "cmake": (
        "CMake Error at CMakeLists.txt:3 (find_package):\n"
        "  Could NOT find Boost (missing: Boost_INCLUDE_DIR)"),
    "git": "fatal: not a git repository (or any of the parent directories): .git",
    "git-auth": (
        "remote: Support for password authentication was removed.\n"
        "fatal: Authentication failed for 'https://h.example/r'"),
    "permission": "PermissionError: [Errno 13] Permission denied: '/data/out.txt'",
    "no-such-file": "FileNotFoundError: [Errno 2] No such file or directory: 'config.yaml'",
    "pytest": (
        "FAILED tests/test_api.py::test_get - assert 404 == 200\n"
        "1 failed, 41 passed in 3.20s"),
    "sql": "sqlalchemy.exc.OperationalError: (sqlite3.OperationalError) no such table: users",
    "redis": "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.",
    "kubernetes": "Back-off restarting failed container app in pod app-7d4b9c_default(1a2b)",
    "slurm": (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=42.0. Some of the step tasks have been OOM "
        "Killed."),
    "jupyter": (
        "Failed to start the Kernel.\n"
        "Bad file descriptor (C:\\ci\\zeromq\\src\\epoll.cpp:100)"),
    "segfault": (
        "Fatal Python error: Segmentation fault\n"
        "\n"
        "Current thread 0x00007f (most recent call first):\n"
        '  File "a.py", line 3 in <module>'),
    "ssh": "ssh: connect to host gpu01 port 22: Connection refused",
    "json": "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "unpickle": (
        "_pickle.UnpicklingError: invalid load key, '\\x80'.\n"
        '  File "read_cache.py", line 3'),
    "prose": "My training does not converge, what learning rate should I take?",
    "prose-gpu": "How many GPUs do I need for a model of 70 billion parameters with PyTorch and CUDA?",
    "empty-ish": "....",
}
