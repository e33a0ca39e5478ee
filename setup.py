from setuptools import find_packages, setup

setup(
    name="fairseq-capsule",
    version="0.1.0",
    description="Capsule routing for neural machine translation: a fairseq plugin",
    long_description=open("README.md", encoding="utf-8").read(),
    long_description_content_type="text/markdown",
    license="MIT",
    packages=find_packages(include=["fairseq_capsule", "fairseq_capsule.*"]),
    package_data={"fairseq_capsule.analysis.inspector": ["*.css", "*.html", "*.js"]},
    python_requires=">=3.9",
    # fairseq itself is not named: `fairseq-fixed` and an upstream fairseq both provide it, and building it needs torch
    # first. `make install` brings it; `fairseq-capsule doctor` says what is missing.
    install_requires=[
        "torch>=2.6",
        "numpy",
        "hydra-core>=1.3",
        "omegaconf",
        "rouge-score>=0.1.2",
        "sacrebleu>=2.3",
        "subword-nmt>=0.3.8",
        "jieba>=0.42.1",
        "sacremoses>=0.1",
        "sentencepiece>=0.2",
        "matplotlib>=3.7",
        "pyyaml",
        "submitit>=1.5",
        "tqdm",
    ],
    extras_require={
        "fairseq": ["fairseq-fixed==0.12.3.1"],
        "train": ["tensorboardX"],
        "dev": ["pytest", "hypothesis", "ruff", "mypy", "pytest-timeout", "pytest-xdist", "selenium"],
        "alignment": ["eflomal>=2.0"],
    },
    entry_points={"console_scripts": ["fairseq-capsule=fairseq_capsule.cli:main"]},
)
