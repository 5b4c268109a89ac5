// Start of the page of a study.

startFurniture();
startChoice();
startRuns();
startParallel();
startOver();
startHeat();
startFront();
choose(); // which lets every view be made, once
startCharts();
